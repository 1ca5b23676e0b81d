import os,sys,time,subprocess,shutil,signal,statistics as st,json
BIN=sys.argv[1]; variants=sys.argv[2].split(";"); rounds=int(sys.argv[3]); load=sys.argv[4]=="busy"
top="/dev/shm/varvebusy"; os.makedirs(top,exist_ok=True)
def work(d):
    r={}
    os.makedirs(d+"/f"); buf=os.urandom(4096)
    def loop(name,secs,fn):
        t=time.perf_counter(); k=0
        while time.perf_counter()-t<secs: fn(k); k+=1
        r[name]=k/(time.perf_counter()-t); return k
    def create(k):
        h=os.open(f"{d}/f/{k}",os.O_CREAT|os.O_WRONLY|os.O_EXCL,0o600); os.write(h,buf); os.close(h)
    n=loop("create",0.6,create)
    t=time.perf_counter()
    for k in range(n): os.unlink(f"{d}/f/{k}")
    r["unlink"]=n/(time.perf_counter()-t)
    def cfs(k):
        h=os.open(f"{d}/f/s{k}",os.O_CREAT|os.O_WRONLY|os.O_EXCL,0o600); os.write(h,buf); os.fsync(h); os.close(h)
    loop("create+fsync",0.6,cfs)
    L=os.open(d+"/log",os.O_CREAT|os.O_WRONLY|os.O_APPEND,0o600)
    def log(k): os.write(L,buf[:100]); os.fdatasync(L)
    loop("line+fsync",0.6,log); os.close(L)
    t=time.perf_counter(); subprocess.run(["tar","xf","/tmp/w/t/s.tar","-C",d],check=True); r["untar"]=1/(time.perf_counter()-t)
    return r
res={v:[] for v in variants}
burn=[]
try:
  for i in range(rounds):
    for v in variants:
        img=f"{top}/img"
        with open(img,"wb") as f: f.truncate(1<<30)
        loop=subprocess.check_output(["losetup","--find","--show",img],text=True).strip()
        m=top+"/m"; os.makedirs(m,exist_ok=True); p=None
        try:
            if v=="ext4": subprocess.run(["mkfs.ext4","-q","-N","131072","-E","lazy_itable_init=0,lazy_journal_init=0",loop],check=True); subprocess.run(["mount",loop,m],check=True)
            else:
                env=dict(os.environ); opts=[]
                for w in v.split(",")[1:]:
                    if w.startswith("@"): k,x=w[1:].split("="); env[k]=x
                    else: opts.append(w)
                subprocess.run([BIN+"/mkfs.varve","-q",loop],check=True); subprocess.run([BIN+"/varve","mount",loop,m]+(["-o",",".join(opts)] if opts else []),check=True,env=env,stdout=subprocess.DEVNULL)
            if load: burn=[subprocess.Popen([sys.executable,"-c","while True: pass"],preexec_fn=(lambda n=n: os.nice(n))) for n in (0,10)]
            res[v].append(work(m))
        finally:
            for b in burn: b.kill(); b.wait()
            burn=[]
            subprocess.run(["umount",m]); time.sleep(.3); subprocess.run(["losetup","-d",loop])
finally: shutil.rmtree(top,ignore_errors=True)
keys=list(res[variants[0]][0])
base={k:st.median(x[k] for x in res["ext4"]) for k in keys} if "ext4" in res else None
print("%-40s"%("load "+sys.argv[4]),*("%22s"%k for k in keys))
for v in variants: print("%-40s"%v,*("%9.0f (%4.2f; %4.2f-%4.2f)"%((lambda l:(st.median(l),st.median(l)/base[k],min(l)/base[k],max(l)/base[k]))([x[k] for x in res[v]])) if k!="untar" else "%9.2f (%4.2f; %4.2f-%4.2f)"%((lambda l:(st.median(l),st.median(l)/base[k],min(l)/base[k],max(l)/base[k]))([x[k] for x in res[v]])) for k in keys))
