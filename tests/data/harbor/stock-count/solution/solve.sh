#!/bin/bash
awk '{ sum += $2 } END { print "stock", sum }' north.txt south.txt > /app/stock.txt
