"""What must hold: a transcript and a workspace become verdicts."""
