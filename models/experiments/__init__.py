"""The papers' tables and figures as data, and what runs them."""
