"""The parts of the page of the studio: each shows something of a session, and changes it as the user says."""
