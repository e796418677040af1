"""Reports for tables and streams of points: who is where, which report is drawn, what is kept."""
