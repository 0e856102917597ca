"""What tests of tenure, of its drivers and of applications stand on. Nothing of the library imports it."""
