// Measures what launches, graph nodes, synchronisations and copies cost, with and without CUPTI: the source of the constants in
// nsysmap/calibration.py.  nvcc -O2 -std=c++17 -arch=sm_90 launch_costs.cu -lcupti (with CUPTI's include and library folders).
//
// One NVIDIA H200, driver 580.159, CUDA 13.0; two runs of the first part, one of the others; us:
//   graph of n kernels that spin k us, launch and synchronise: 5.4 to 6.1 + n * (k + 0.54 to 0.59)
//   the same in a stream, not launch-bound (k 6): n * (k + 1.3 to 1.4); launch call 3.4 to 4.9; graph launch call 1.3 to 2.4
//   synchronise with nothing to wait for: 0.3 to 0.6; one kernel, launch and synchronise: 8.8 to 10.1
//   with CUPTI: kernel k + 0.62 to 0.64, gap in a stream 1.25, in a graph 0.26; launch call 5.3 to 5.6, graph launch of 40 nodes 48
//   1 MiB in and 512 KiB out, pinned and asynchronous, around 40 kernels: 35.6 more than the kernels alone
//   two threads with a stream each against one, the same work each: 1.10 to 1.12 times the time
#include <cuda_runtime.h>
#include <cupti.h>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <algorithm>
#include <chrono>
#include <thread>
using clk=std::chrono::steady_clock;
static double us(clk::time_point a, clk::time_point b){return std::chrono::duration<double,std::micro>(b-a).count();}
__global__ void spin(long long cyc){ long long t=clock64(); while(clock64()-t<cyc){} }
struct Rec{unsigned long long s,e; unsigned corr; unsigned long long node;};
struct Api{unsigned long long s,e; unsigned corr; unsigned cbid;};
static std::vector<Rec> recs; static std::vector<Api> apis; static std::vector<Rec> syncs;
static void CUPTIAPI req(uint8_t**b,size_t*s,size_t*n){*s=8<<20;*b=(uint8_t*)aligned_alloc(8,*s);*n=0;}
static void CUPTIAPI done(CUcontext,uint32_t,uint8_t*b,size_t,size_t v){CUpti_Activity*r=nullptr;while(cuptiActivityGetNextRecord(b,v,&r)==CUPTI_SUCCESS){
 if(r->kind==CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL){auto*k=(CUpti_ActivityKernel9*)r;recs.push_back({k->start,k->end,k->correlationId,k->graphNodeId});}
 else if(r->kind==CUPTI_ACTIVITY_KIND_RUNTIME){auto*a=(CUpti_ActivityAPI*)r;apis.push_back({a->start,a->end,a->correlationId,a->cbid});}}
 free(b);}
static double med(std::vector<double> v){if(v.empty())return -1;std::sort(v.begin(),v.end());return v[v.size()/2];}
static cudaStream_t st; static cudaGraphExec_t ge;
static void launch(int n,long long c){for(int i=0;i<n;i++)spin<<<32,128,0,st>>>(c);}
static void build(int n,long long c){cudaGraph_t g;cudaStreamBeginCapture(st,cudaStreamCaptureModeGlobal);launch(n,c);cudaStreamEndCapture(st,&g);cudaGraphInstantiate(&ge,g,0);cudaGraphDestroy(g);}
static double mode(const char*m,int n,long long c,int reps){ // median-ish mean wall per inference
  std::vector<double> v; 
  if(m[0]=='a'){cudaStreamSynchronize(st);auto a=clk::now();for(int i=0;i<reps;i++)launch(n,c);cudaStreamSynchronize(st);return us(a,clk::now())/reps;}
  for(int i=0;i<reps;i++){auto a=clk::now(); if(m[0]=='s')launch(n,c);else cudaGraphLaunch(ge,st); cudaStreamSynchronize(st); v.push_back(us(a,clk::now()));}
  return med(v);}
static void row(int n,double kus,int reps,bool prof){ int khz;cudaDeviceGetAttribute(&khz,cudaDevAttrClockRate,0); long long c=(long long)(kus*khz/1000);
  build(n,c); for(int i=0;i<20;i++){launch(n,c);cudaGraphLaunch(ge,st);} cudaStreamSynchronize(st);
  // host costs
  std::vector<double> lc,gc,sr; for(int i=0;i<200;i++){ cudaStreamSynchronize(st); auto a=clk::now(); spin<<<32,128,0,st>>>(c); auto b=clk::now(); lc.push_back(us(a,b)); cudaStreamSynchronize(st); a=clk::now(); cudaGraphLaunch(ge,st); b=clk::now(); gc.push_back(us(a,b)); cudaStreamSynchronize(st);
    a=clk::now(); cudaStreamSynchronize(st); sr.push_back(us(a,clk::now()));}
  auto a=clk::now(); for(int i=0;i<500;i++) spin<<<32,128,0,st>>>(0); auto b=clk::now(); double burst=us(a,b)/500; cudaStreamSynchronize(st);
  printf("%s n %d k %.1f | sync %.2f async %.2f graph %.2f | launch call %.2f burst %.2f graphcall %.2f idle sync %.2f\n",prof?"CUPTI":"plain",n,kus,mode("s",n,c,reps),mode("a",n,c,reps),mode("g",n,c,reps),med(lc),burst,med(gc),med(sr));
  cudaGraphExecDestroy(ge);
}
static void stats(const char*what){ cudaDeviceSynchronize(); cuptiActivityFlushAll(1);
  std::sort(recs.begin(),recs.end(),[](const Rec&a,const Rec&b){return a.s<b.s;});
  std::vector<double> d,g,gg; for(size_t i=0;i<recs.size();i++){d.push_back((recs[i].e-recs[i].s)/1e3); if(i&&recs[i].s>recs[i-1].e&&recs[i].s-recs[i-1].e<3000){ if(recs[i].corr==recs[i-1].corr)gg.push_back((recs[i].s-recs[i-1].e)/1e3); else g.push_back((recs[i].s-recs[i-1].e)/1e3);}}
  std::vector<double> al; for(auto&x:apis) if(x.cbid==CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000) al.push_back((x.e-x.s)/1e3);
  printf("   %s: kernels %zu dur med %.3f stream gap med %.3f graph gap med %.3f  launch api med %.3f (%zu)\n",what,recs.size(),med(d),med(g),med(gg),med(al),al.size()); recs.clear();apis.clear();}
int main(){ cudaStreamCreateWithFlags(&st,cudaStreamNonBlocking); launch(100,1000);cudaStreamSynchronize(st);
  for(double k:{0.0,1.0,3.0,6.0}) for(int n:{1,20,40,80}) row(n,k,200,false);
  // H2D copies
  size_t B[]={64<<10,786432,1<<20,4<<20}; void*dv;cudaMalloc(&dv,8<<20);void*pin;cudaMallocHost(&pin,8<<20);void*pg=malloc(8<<20);memset(pg,1,8<<20);
  for(size_t b:B){ for(int dir=0;dir<2;dir++){ auto T=[&](void*h,bool as){std::vector<double>v;for(int i=0;i<50;i++){auto a=clk::now(); if(as){cudaMemcpyAsync(dir?h:dv,dir?dv:h,b,dir?cudaMemcpyDeviceToHost:cudaMemcpyHostToDevice,st);cudaStreamSynchronize(st);} else cudaMemcpy(dir?h:dv,dir?dv:h,b,dir?cudaMemcpyDeviceToHost:cudaMemcpyHostToDevice); v.push_back(us(a,clk::now()));}return med(v);};
    printf("copy %zu %s pageable %.1f pinned async+sync %.1f\n",b,dir?"D2H":"H2D",T(pg,false),T(pin,true)); }}
  { // chain: pinned h2d, kernels, d2h
    int n=40; std::vector<double> v,w; for(int i=0;i<200;i++){auto a=clk::now();cudaMemcpyAsync(dv,pin,1<<20,cudaMemcpyHostToDevice,st);launch(n,6000);cudaMemcpyAsync(pin,dv,1<<19,cudaMemcpyDeviceToHost,st);cudaStreamSynchronize(st);v.push_back(us(a,clk::now()));a=clk::now();launch(n,6000);cudaStreamSynchronize(st);w.push_back(us(a,clk::now()));}
    printf("with pinned copies %.2f without %.2f\n",med(v),med(w)); }
  { // two threads
    auto T=[&](int threads,long long c){std::vector<std::thread> t;auto a=clk::now();for(int k=0;k<threads;k++)t.emplace_back([&]{cudaStream_t s;cudaStreamCreateWithFlags(&s,cudaStreamNonBlocking);for(int i=0;i<300;i++){for(int j=0;j<60;j++)spin<<<32,128,0,s>>>(c);cudaStreamSynchronize(s);}});for(auto&x:t)x.join();return us(a,clk::now())/300;};
    for(long long c:{0LL,6000LL}) printf("threads: cyc %lld one %.1f two %.1f\n",c,T(1,c),T(2,c)); }
  cuptiActivityRegisterCallbacks(req,done); cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME);
  for(double k:{0.0,1.0,3.0,6.0}) { row(40,k,200,true); stats("kernels"); }
  return 0;}
