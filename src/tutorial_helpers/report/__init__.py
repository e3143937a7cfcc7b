"""The report: run the collection, show what held on this machine, and set machines side by side."""
