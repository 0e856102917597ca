"""The transitions, by family: functions of a transaction, each done whole or not at all."""
