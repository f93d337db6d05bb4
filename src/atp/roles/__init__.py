"""A testing job becomes a model or agent call and its typed answer: assess, simulate, generate, vary, report."""
