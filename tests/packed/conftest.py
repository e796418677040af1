"""The browser of the report pages, for the client too."""

from reports.conftest import browser as browser
