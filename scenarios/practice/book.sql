-- The order book of the shop as it is every morning: what every task starts from.
create table customers (
    customer_id text primary key, name text not null, email text not null unique,
    country text not null, currency text not null, address text not null
) strict;
create table products (
    product_id text primary key, name text not null, category text not null,
    unit_price real not null, currency text not null, stock integer not null,
    lead_days integer not null, weight_g integer not null
) strict;
create table orders (
    order_id text primary key, customer_id text not null references customers,
    product_id text not null references products, quantity integer not null,
    amount real not null, currency text not null, status text not null,
    placed_at text not null, deliver_by text not null, address text not null,
    version integer not null
) strict;
create table refunds (
    refund_id text primary key, order_id text not null references orders,
    amount real not null, currency text not null, reason text not null,
    created_at text not null
) strict;
create table notes (
    note_id text primary key, order_id text not null references orders,
    text text not null, created_at text not null
) strict;
-- Which task the file was set up for, its fixed clock, and how many writes it has seen.
create table shop (task text not null, now text not null, writes integer not null) strict;

insert into customers values
('cus-2047', 'Ilse Brandt', 'ilse.brandt@northlamp.example', 'DE', 'EUR', 'Hafenstrasse 18, 20457 Hamburg'),
('cus-2113', 'Tomas Eriksen', 'tomas@fjordwerk.example', 'SE', 'SEK', 'Skeppsbron 42, 11130 Stockholm'),
('cus-2186', 'Maeve Doyle', 'maeve.doyle@quayside.example', 'GB', 'GBP', '7 Custom House Quay, E16 2QX London'),
('cus-2254', 'Jakub Nowak', 'jakub.nowak@wiatrak.example', 'PL', 'PLN', 'Dluga 63, 80831 Gdansk'),
('cus-2319', 'Renata Keller', 'renata@kellerbau.example', 'CH', 'CHF', 'Seefeldstrasse 129, 80083 Zuerich'),
('cus-2378', 'Owen Pratt', 'owen.pratt@dustybarn.example', 'US', 'USD', '2214 Alder Street, 97405 Eugene'),
('cus-2442', 'Chiara Moretti', 'chiara@officina.example', 'IT', 'EUR', 'Via Tortona 37, 20144 Milano'),
('cus-2501', 'Lena Brandt', 'lena@brandtlicht.example', 'AT', 'EUR', 'Mariahilfer 88, 10710 Wien');

insert into products values
('sku-4411', 'Trail lamp', 'lighting', 38.75, 'EUR', 214, 4, 1420),
('sku-4427', 'Harbour lantern', 'lighting', 41.36, 'EUR', 1360, 6, 2385),
('sku-4436', 'Deck floodlight', 'lighting', 36.92, 'EUR', 48, 9, 3160),
('sku-4512', 'Canvas tarpaulin', 'covers', 127.45, 'USD', 872, 5, 6240),
('sku-4538', 'Pallet hood', 'covers', 119.83, 'USD', 1945, 8, 5175),
('sku-4551', 'Hay net', 'covers', 108.27, 'USD', 36, 3, 4390),
('sku-4603', 'Braided rope 50 m', 'rigging', 64.18, 'GBP', 1127, 7, 3815),
('sku-4629', 'Anchor shackle', 'rigging', 57.39, 'GBP', 2316, 11, 1265),
('sku-4644', 'Turnbuckle', 'rigging', 52.71, 'GBP', 19, 2, 1190);

insert into orders values
('ord-7018', 'cus-2047', 'sku-4411', 24, 1057.86, 'USD', 'delivered', '2026-01-08T08:12:00Z', '2026-01-19T11:30:00Z', 'Hafenstrasse 18, 20457 Hamburg', 4),
('ord-7063', 'cus-2047', 'sku-4512', 11, 1293.72, 'EUR', 'delivered', '2026-02-04T13:47:00Z', '2026-02-16T15:20:00Z', 'Hafenstrasse 18, 20457 Hamburg', 6),
('ord-7142', 'cus-2047', 'sku-4603', 18, 1356.94, 'EUR', 'pending', '2026-03-06T09:35:00Z', '2026-03-27T16:45:00Z', 'Am Sandtorkai 5, 20457 Hamburg', 3),
('ord-7027', 'cus-2113', 'sku-4427', 36, 16734.52, 'SEK', 'delivered', '2026-01-14T10:26:00Z', '2026-01-29T09:15:00Z', 'Skeppsbron 42, 11130 Stockholm', 5),
('ord-7081', 'cus-2113', 'sku-4629', 42, 31864.75, 'SEK', 'delivered', '2026-02-11T15:53:00Z', '2026-02-26T12:40:00Z', 'Skeppsbron 42, 11130 Stockholm', 7),
('ord-7155', 'cus-2113', 'sku-4551', 14, 15748.39, 'SEK', 'pending', '2026-03-09T11:08:00Z', '2026-03-24T14:25:00Z', 'Lilla Nygatan 9, 11128 Stockholm', 2),
('ord-7034', 'cus-2186', 'sku-4538', 16, 1506.28, 'GBP', 'delivered', '2026-01-17T14:38:00Z', '2026-02-02T10:50:00Z', '7 Custom House Quay, E16 2QX London', 3),
('ord-7092', 'cus-2186', 'sku-4411', 45, 1369.73, 'GBP', 'delivered', '2026-02-16T09:21:00Z', '2026-03-02T13:35:00Z', '7 Custom House Quay, E16 2QX London', 8),
('ord-7168', 'cus-2186', 'sku-4436', 38, 1194.86, 'GBP', 'pending', '2026-03-10T16:42:00Z', '2026-03-26T09:55:00Z', '31 Wapping Wall, E1W 3SG London', 4),
('ord-7041', 'cus-2254', 'sku-4603', 22, 7084.63, 'PLN', 'delivered', '2026-01-21T12:17:00Z', '2026-02-06T14:05:00Z', 'Dluga 63, 80831 Gdansk', 4),
('ord-7106', 'cus-2254', 'sku-4427', 57, 10073.48, 'PLN', 'delivered', '2026-02-19T08:56:00Z', '2026-03-05T11:10:00Z', 'Dluga 63, 80831 Gdansk', 6),
('ord-7173', 'cus-2254', 'sku-4644', 26, 6879.15, 'PLN', 'pending', '2026-03-11T13:24:00Z', '2026-03-30T15:40:00Z', 'Ogarna 12, 80826 Gdansk', 3),
('ord-7052', 'cus-2319', 'sku-4629', 27, 1736.58, 'CHF', 'delivered', '2026-01-26T16:09:00Z', '2026-02-10T08:30:00Z', 'Seefeldstrasse 129, 80083 Zuerich', 5),
('ord-7117', 'cus-2319', 'sku-4538', 13, 1371.64, 'CHF', 'delivered', '2026-02-23T10:44:00Z', '2026-03-09T16:20:00Z', 'Seefeldstrasse 129, 80083 Zuerich', 2),
('ord-7189', 'cus-2319', 'sku-4436', 34, 1283.97, 'CHF', 'pending', '2026-03-12T14:51:00Z', '2026-04-01T12:15:00Z', 'Bellerivestrasse 4, 80081 Zuerich', 7),
('ord-7069', 'cus-2378', 'sku-4551', 21, 2273.67, 'USD', 'delivered', '2026-02-06T11:32:00Z', '2026-02-20T09:45:00Z', '2214 Alder Street, 97405 Eugene', 3),
('ord-7124', 'cus-2378', 'sku-4629', 19, 1387.92, 'USD', 'delivered', '2026-02-25T15:16:00Z', '2026-03-11T13:50:00Z', '2214 Alder Street, 97405 Eugene', 5),
('ord-7194', 'cus-2378', 'sku-4436', 31, 1248.36, 'USD', 'pending', '2026-03-13T09:03:00Z', '2026-04-02T10:35:00Z', '860 Willamette Lane, 97401 Eugene', 2),
('ord-7075', 'cus-2442', 'sku-4538', 25, 2763.49, 'EUR', 'delivered', '2026-02-09T13:28:00Z', '2026-02-23T15:55:00Z', 'Via Tortona 37, 20144 Milano', 6),
('ord-7131', 'cus-2442', 'sku-4644', 23, 1423.86, 'EUR', 'delivered', '2026-02-27T08:37:00Z', '2026-03-13T11:25:00Z', 'Via Tortona 37, 20144 Milano', 4),
('ord-7207', 'cus-2442', 'sku-4551', 17, 1698.24, 'EUR', 'pending', '2026-03-13T17:19:00Z', '2026-04-03T14:50:00Z', 'Corso Genova 15, 20123 Milano', 5),
('ord-7136', 'cus-2501', 'sku-4427', 29, 1199.44, 'EUR', 'delivered', '2026-03-02T10:58:00Z', '2026-03-14T09:40:00Z', 'Mariahilfer 88, 10710 Wien', 2);

insert into refunds values
('ref-5012', 'ord-7018', 214.37, 'USD', 'one lamp missing', '2026-01-22T09:05:00Z'),
('ref-5026', 'ord-7081', 3186.45, 'SEK', 'late delivery', '2026-03-02T14:31:00Z'),
('ref-5031', 'ord-7092', 136.98, 'GBP', 'scratched glass', '2026-03-06T10:17:00Z'),
('ref-5047', 'ord-7117', 274.33, 'CHF', 'wrong colour', '2026-03-12T08:49:00Z');

insert into notes values
('note-3008', 'ord-7018', 'left with the porter', '2026-01-19T11:42:00Z'),
('note-3015', 'ord-7106', 'asked for a morning slot', '2026-02-20T07:30:00Z');

insert into shop values ('', '2026-03-16T09:00:00Z', 0);
