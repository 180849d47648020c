int get_int(void);
int get_char(void);
void put_int(int value);
void put_char(int value);
