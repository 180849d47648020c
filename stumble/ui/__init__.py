"""`stumble ui`: pages over one store, on 127.0.0.1.

guard      who may ask: token, Host, Origin, and the headers of every answer
server     the sockets, the index kept up to date, the end of all children
app        the routes; each calls one function of `values/` and one template
values/    what a page shows, as plain values: for the page, the exported file and the tests
templates/ HTML by jinja2, every value escaped; static/ style sheets and ES modules
"""
