/* Nothing here but odd ways
   to write it down. */ int	a = 0x0F ; /**/ int b=0
;
	int/*type*/c/*name*/[/*size*/3/**/]={'a',// first
'\\' , '\''}// no semicolon yet
  ;

int
f
(
int x
)
{
return x- -1;}
int main(void){a=get_int();int i=0;for(;;){if(i>=3)break;else{put_char(c[i]);i+=1;}}
  /* // */ put_int(f(a)) ; // /* not open
		put_int(- - -1);;;{;}
 if(a)if(b)put_char('x');else put_char('"');
while(b<2)b+=1;put_int(a<<b>>1&7|!b);put_char('\n')
;return a/**/%/*a*/4;}
