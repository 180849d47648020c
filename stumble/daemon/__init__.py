"""Recording all day: many agents behind one proxy, each conversation on a tape of its own."""
