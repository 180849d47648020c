"""`stumble ui`: pages over one store, on 127.0.0.1.

serving/   the server, its routes and their guard (token, Host, Origin), the children it ends
pages/     one module for each page: reads what an address asks for, and renders it
reading/   the index as it changes, runs and exchanges that were read, SQL in a process of its own
values/    what a page shows, as plain values: for the page, the exported file and the tests
templates/ HTML by jinja2, every value escaped; static/ style sheets and ES modules
"""
