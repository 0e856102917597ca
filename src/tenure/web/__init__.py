"""What tenure answers over HTTP."""
