"""Fails when fewer than the given percentage of lines were run; branches are measured and reported, not required."""

import json
import pathlib
import subprocess
import sys
import tempfile

floor = float(sys.argv[1])
with tempfile.TemporaryDirectory() as directory:
    report = pathlib.Path(directory, "coverage.json")
    subprocess.run([sys.executable, "-m", "coverage", "json", "-q", "-o", report], check=True)
    totals = json.loads(report.read_text())["totals"]
lines = 100 * totals["covered_lines"] / max(totals["num_statements"], 1)
branches = 100 * totals["covered_branches"] / max(totals["num_branches"], 1)
print(f"Lines run: {lines:.1f} % (at least {floor:g} % are required); branches: {branches:.1f} %")
sys.exit(lines < floor)
