"""Generated test cases and variations of prompts."""
