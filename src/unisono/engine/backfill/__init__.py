"""Until when: who ends when, who starts when, and who may go first meanwhile (spec time)."""
