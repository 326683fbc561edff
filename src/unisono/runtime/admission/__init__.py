"""Admission rules that a real API server applies itself, as ValidatingAdmissionPolicies."""
