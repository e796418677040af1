"""What people look at: words, pictures, pages."""
