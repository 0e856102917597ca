"""Jobs that nothing runs: what plans are made of."""

from tenure import Tenure

app = Tenure("memory://", namespace="plans")


@app.job
def one(number: int) -> int:
    return number


@app.job
def add(number: int, more: int = 1) -> int:
    return number + more


@app.job
class Report:
    def __init__(self, number: int) -> None:
        self.number = number

    def handle(self) -> int:
        return self.number
