// A CUDA driver and runtime without a GPU, as far as CuPy and the project's kernels use them.
//
// Memory of the GPU is memory of this process, filled with 0xff (NaN) until somebody writes. Work
// waits in one queue, which a thread of its own carries out, so that whoever forgets to wait reads
// what is not there yet. A kernel is PTX, translated to C++ and compiled (code.py), run in a random
// order with late copies. What a GPU refuses is refused: launches that do not fit, more shared
// memory than was asked for, addresses outside of every array. After such an address all calls
// fail, as after an illegal address on a GPU.
//
// The environment says which GPU it is: DOUBLE_CAPABILITY (90), DOUBLE_SHARED (bytes of shared
// memory that a block may ask for), DOUBLE_MEMORY (MiB), DOUBLE_BREAKS (the launch, from 1, that
// meets an illegal address by itself; 0: none).

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#define API extern "C" __attribute__((visibility("default")))

namespace {

int stated(const char* name, int usual)
{
    const char* said = getenv(name);
    return said ? atoi(said) : usual;
}

const int capability = stated("DOUBLE_CAPABILITY", 90);
const int opt_in = stated("DOUBLE_SHARED", 227 * 1024);
const int breaks = stated("DOUBLE_BREAKS", 0);
const size_t memory = size_t(stated("DOUBLE_MEMORY", 4096)) << 20;
constexpr int MULTIPROCESSORS = 4, USUAL_SHARED = 48 * 1024, MOST_THREADS = 1024;

std::atomic<int> broken{0};  // the error that every call returns from now on
thread_local int last = 0;   // what cudaGetLastError returns

cudaError_t told(int error)
{
    if (error) last = error;
    return cudaError_t(error);
}

// --- the queue -------------------------------------------------------------------------------
//
// Never destroyed: its thread may outlive main.

struct Queue {
    std::mutex lock;
    std::condition_variable more, empty;
    std::deque<std::function<void()>> work;
    bool busy = false;

    void run()
    {
        for (std::unique_lock<std::mutex> hold(lock);;) {
            more.wait(hold, [&] { return !work.empty(); });
            const auto next = std::move(work.front());
            work.pop_front();
            busy = true;
            hold.unlock();
            if (!broken) next();
            hold.lock();
            busy = false;
            if (work.empty()) empty.notify_all();
        }
    }
    void add(std::function<void()> next)
    {
        static std::once_flag once;
        std::call_once(once, [this] { std::thread(&Queue::run, this).detach(); });
        const std::lock_guard<std::mutex> hold(lock);
        work.push_back(std::move(next));
        more.notify_one();
    }
    int wait()
    {
        std::unique_lock<std::mutex> hold(lock);
        empty.wait(hold, [&] { return work.empty() && !busy; });
        return broken;
    }
};
Queue& queue = *new Queue;

// --- arrays ----------------------------------------------------------------------------------

struct Span { uint64_t first, end; };  // ptx::Span of machine.h

struct Arrays {
    std::mutex lock;
    std::map<uint64_t, uint64_t> ends;  // by first address
    size_t used = 0;

    bool contain(const void* place, size_t bytes)
    {
        const std::lock_guard<std::mutex> hold(lock);
        const auto at = uint64_t(place);
        auto after = ends.upper_bound(at);
        return after != ends.begin() && at + bytes <= std::prev(after)->second;
    }
    std::vector<Span> all()
    {
        const std::lock_guard<std::mutex> hold(lock);
        std::vector<Span> found;
        for (const auto& [first, end] : ends) found.push_back({first, end});
        return found;
    }
};
Arrays& arrays = *new Arrays;

// --- kernels ---------------------------------------------------------------------------------

struct Launch {  // host::Launch of cuda_on_cpu.h
    unsigned grid[3], block[3];
    uint64_t shared_bytes;
    int order;
    unsigned seed;
    int workers, late;
};
struct Spans { const Span* spans; uint64_t count; };

struct Kernel {
    std::string name;
    int (*launch)(const Launch*, void**, char*, int);
    std::vector<int> sizes;  // of its arguments
    Spans* allocated;        // what its module holds addresses against
    int fixed, threads;      // bytes of shared memory that it declares; most threads of a block
    int dynamic, carveout = -1;
};
struct Loaded { std::map<std::string, Kernel> kernels; };

// Says how a cubin or PTX is run: "PATH\nNAME FIXED THREADS\n.." in `answer`, or an error.
using Loader = int (*)(const void* image, int capability, char* answer, int size);
Loader loader = nullptr;

std::vector<std::string> packed(const Kernel& kernel, void** arguments)
{
    std::vector<std::string> kept;
    for (size_t n = 0; n < kernel.sizes.size(); ++n)
        kept.emplace_back(static_cast<const char*>(arguments[n]), kernel.sizes[n]);
    return kept;
}

// The error of a launch for what the emulation says about it.
int error_of(const char* message)
{
    if (strstr(message, "lie outside")) return cudaErrorIllegalAddress;
    if (strstr(message, "not a multiple")) return cudaErrorMisalignedAddress;
    return cudaErrorLaunchFailure;
}

void carry_out(const Kernel& kernel, Launch plan, std::vector<std::string> arguments,
               const std::vector<Span>& spans, unsigned number)
{
    std::vector<void*> pointers;
    for (std::string& each : arguments) pointers.push_back(each.data());
    char message[1024] = "";
    plan.seed = number;
    *kernel.allocated = {spans.data(), spans.size()};
    if (int(number) == breaks) {
        snprintf(message, sizeof message, "DOUBLE_BREAKS names this launch");
        broken = cudaErrorIllegalAddress;
    } else if (kernel.launch(&plan, pointers.data(), message, sizeof message))
        broken = error_of(message);
    if (broken) fprintf(stderr, "GPU double: %s, %s\n", kernel.name.c_str(), message);
}

}  // namespace

API void double_loader(Loader given) { loader = given; }

API CUresult cuModuleLoadData(CUmodule* module, const void* image)
{
    if (broken) return CUresult(int(broken));
    if (!loader) return CUDA_ERROR_NOT_INITIALIZED;
    std::vector<char> answer(1 << 16);
    if (const int error = loader(image, capability, answer.data(), int(answer.size())))
        return CUresult(error);
    std::istringstream lines(answer.data());
    std::string path, name;
    std::getline(lines, path);
    void* library = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) return CUDA_ERROR_INVALID_IMAGE;
    auto* loaded = new Loaded;
    for (int fixed, threads; lines >> name >> fixed >> threads;) {
        Kernel& kernel = loaded->kernels[name];
        kernel = {name, nullptr, {}, static_cast<Spans*>(dlsym(library, "allocated")), fixed,
                  threads, USUAL_SHARED - fixed};
        kernel.launch = reinterpret_cast<decltype(kernel.launch)>(
            dlsym(library, ("launch_" + name).c_str()));
        auto sizes = reinterpret_cast<const int* (*)()>(dlsym(library, ("sizes_" + name).c_str()));
        if (!kernel.launch || !sizes || !kernel.allocated) return CUDA_ERROR_INVALID_IMAGE;
        for (const int* size = sizes(); *size; ++size) kernel.sizes.push_back(*size);
    }
    *module = reinterpret_cast<CUmodule>(loaded);
    return CUDA_SUCCESS;
}

API CUresult cuModuleUnload(CUmodule module)
{
    queue.wait();
    delete reinterpret_cast<Loaded*>(module);
    return CUDA_SUCCESS;
}

API CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name)
{
    auto& kernels = reinterpret_cast<Loaded*>(module)->kernels;
    const auto found = kernels.find(name);
    if (found == kernels.end()) return CUDA_ERROR_NOT_FOUND;
    *function = reinterpret_cast<CUfunction>(&found->second);
    return CUDA_SUCCESS;
}

API CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function)
{
    const Kernel& kernel = *reinterpret_cast<Kernel*>(function);
    switch (attribute) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = kernel.threads; break;
        case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = kernel.fixed; break;
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = kernel.dynamic; break;
        case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = kernel.carveout; break;
        default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

API CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    Kernel& kernel = *reinterpret_cast<Kernel*>(function);
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && value >= 0 &&
        value + kernel.fixed <= opt_in)
        kernel.dynamic = value;
    else if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT && value >= -1 &&
             value <= 100)
        kernel.carveout = value;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

API CUresult cuLaunchKernel(CUfunction function, unsigned x, unsigned y, unsigned z,
                            unsigned threads_x, unsigned threads_y, unsigned threads_z,
                            unsigned shared, CUstream, void** arguments, void**)
{
    const Kernel& kernel = *reinterpret_cast<Kernel*>(function);
    if (broken) return CUresult(int(broken));
    const uint64_t threads = uint64_t{threads_x} * threads_y * threads_z;
    if (!x || !y || !z || x > 0x7fffffff || y > 0xffff || z > 0xffff || !threads ||
        threads > MOST_THREADS || threads_z > 64 || threads > uint64_t(kernel.threads) ||
        shared > unsigned(kernel.dynamic))
        return CUDA_ERROR_INVALID_VALUE;
    static std::atomic<unsigned> launches{0};
    const Launch plan = {{x, y, z}, {threads_x, threads_y, threads_z}, shared, 2, 0,
                         int(std::max(1u, std::thread::hardware_concurrency())), 1};
    queue.add([&kernel, plan, kept = packed(kernel, arguments), spans = arrays.all(),
               number = ++launches] { carry_out(kernel, plan, kept, spans, number); });
    return CUDA_SUCCESS;
}

// --- memory ----------------------------------------------------------------------------------

API cudaError_t cudaMalloc(void** place, size_t bytes)
{
    if (broken) return told(broken);
    const std::lock_guard<std::mutex> hold(arrays.lock);
    if (arrays.used + bytes > memory || posix_memalign(place, 512, bytes + !bytes))
        return told(cudaErrorMemoryAllocation);
    memset(*place, 0xff, bytes);
    arrays.ends[uint64_t(*place)] = uint64_t(*place) + bytes;
    arrays.used += bytes;
    return cudaSuccess;
}

API cudaError_t cudaFree(void* place)
{
    queue.wait();
    const std::lock_guard<std::mutex> hold(arrays.lock);
    const auto found = arrays.ends.find(uint64_t(place));
    if (found == arrays.ends.end()) return told(place ? cudaErrorInvalidValue : cudaSuccess);
    arrays.used -= found->second - found->first;
    arrays.ends.erase(found);
    free(place);
    return told(broken);
}

API cudaError_t cudaMemGetInfo(size_t* unused, size_t* total)
{
    const std::lock_guard<std::mutex> hold(arrays.lock);
    *unused = memory - arrays.used;
    *total = memory;
    return told(broken);
}

// From memory that is not pinned: it returns when the host's part is done.
API cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                cudaStream_t)
{
    if (const int error = queue.wait()) return told(error);
    const bool down = kind == cudaMemcpyDeviceToHost, up = kind == cudaMemcpyHostToDevice;
    if ((!down && !arrays.contain(to, bytes)) || (!up && !arrays.contain(from, bytes)))
        return told(cudaErrorInvalidValue);
    memcpy(to, from, bytes);
    return cudaSuccess;
}

API cudaError_t cudaMemset(void* place, int byte, size_t bytes)
{
    if (broken) return told(broken);
    if (!arrays.contain(place, bytes)) return told(cudaErrorInvalidValue);
    queue.add([=] { memset(place, byte, bytes); });
    return cudaSuccess;
}

// --- waiting, and the time ---------------------------------------------------------------------

namespace {
struct Moment {
    std::atomic<bool> passed{false};
    std::chrono::steady_clock::time_point at;
};
Moment& moment(cudaEvent_t event) { return *reinterpret_cast<Moment*>(event); }
}  // namespace

API cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned)
{
    *event = reinterpret_cast<cudaEvent_t>(new Moment);
    return cudaSuccess;
}
API cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    queue.wait();
    delete &moment(event);
    return cudaSuccess;
}
API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t)
{
    if (broken) return told(broken);
    moment(event).passed = false;
    queue.add([event] {
        moment(event).at = std::chrono::steady_clock::now();
        moment(event).passed = true;
    });
    return cudaSuccess;
}
API cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return broken ? told(broken) : moment(event).passed ? cudaSuccess : cudaErrorNotReady;
}
API cudaError_t cudaEventSynchronize(cudaEvent_t) { return told(queue.wait()); }
API cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to)
{
    const int error = queue.wait();
    *milliseconds =
        std::chrono::duration<float, std::milli>(moment(to).at - moment(from).at).count();
    return told(error);
}
API cudaError_t cudaStreamSynchronize(cudaStream_t) { return told(queue.wait()); }
API cudaError_t cudaDeviceSynchronize() { return told(queue.wait()); }
API cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status)
{
    *status = cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

// --- the device ------------------------------------------------------------------------------

namespace {
const char NAME[] = "GPU double";
constexpr int VERSION = 13000;

template <class T> int given(T* place, T value)
{
    *place = value;
    return 0;
}
}  // namespace

API cudaError_t cudaGetDevice(int* device) { return cudaError_t(given(device, 0)); }
API cudaError_t cudaGetDeviceCount(int* count) { return cudaError_t(given(count, 1)); }
API cudaError_t cudaSetDevice(int device)
{
    return told(device ? cudaErrorInvalidDevice : cudaSuccess);
}
API cudaError_t cudaRuntimeGetVersion(int* version) { return cudaError_t(given(version, VERSION)); }
API cudaError_t cudaGetLastError()
{
    const int error = broken ? int(broken) : last;
    last = 0;
    return cudaError_t(error);
}
API cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int)
{
    switch (int(attribute)) {
        case cudaDevAttrComputeCapabilityMajor: *value = capability / 10; break;
        case cudaDevAttrComputeCapabilityMinor: *value = capability % 10; break;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = opt_in; break;
        case cudaDevAttrMaxSharedMemoryPerBlock: *value = USUAL_SHARED; break;
        case cudaDevAttrMultiProcessorCount: *value = MULTIPROCESSORS; break;
        case cudaDevAttrMaxThreadsPerBlock: *value = MOST_THREADS; break;
        case cudaDevAttrWarpSize: *value = 32; break;
        case cudaDevAttrL2CacheSize: *value = 1 << 20; break;
        default: *value = 0;
    }
    return cudaSuccess;
}
API cudaError_t cudaDeviceGetPCIBusId(char* place, int size, int)
{
    snprintf(place, size, "0000:00:00.0");
    return cudaSuccess;
}

API CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
API CUresult cuDriverGetVersion(int* version) { return CUresult(given(version, VERSION)); }
API CUresult cuDeviceGetCount(int* count) { return CUresult(given(count, 1)); }
API CUresult cuDeviceGet(CUdevice* device, int) { return CUresult(given(device, 0)); }
API CUresult cuDeviceGetName(char* name, int size, CUdevice)
{
    snprintf(name, size, "%s", NAME);
    return CUDA_SUCCESS;
}
API CUresult cuCtxGetCurrent(CUcontext* context)
{
    return CUresult(given(context, reinterpret_cast<CUcontext>(&queue)));
}
// NVRTC asks a driver for a private table, whose first number is its size: an empty one.
API CUresult cuGetExportTable(const void** table, const CUuuid*)
{
    static const uint64_t none[] = {sizeof(uint64_t)};
    *table = none;
    return CUDA_SUCCESS;
}

// --- words for errors: those that are returned here ------------------------------------------

namespace {
struct Words { int error; const char *runtime, *driver, *text; };
constexpr Words WORDS[] = {
    {0, "cudaSuccess", "CUDA_SUCCESS", "no error"},
    {1, "cudaErrorInvalidValue", "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "cudaErrorInitializationError", "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {101, "cudaErrorInvalidDevice", "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "cudaErrorInvalidKernelImage", "CUDA_ERROR_INVALID_IMAGE",
     "device kernel image is invalid"},
    {209, "cudaErrorNoKernelImageForDevice", "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {218, "cudaErrorInvalidPtx", "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {500, "cudaErrorSymbolNotFound", "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "cudaErrorNotReady", "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "cudaErrorIllegalAddress", "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {716, "cudaErrorMisalignedAddress", "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {719, "cudaErrorLaunchFailure", "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
};
const Words& words(int error)
{
    static constexpr Words other = {999, "cudaErrorUnknown", "CUDA_ERROR_UNKNOWN", "unknown error"};
    for (const Words& each : WORDS)
        if (each.error == error) return each;
    return other;
}
}  // namespace

API const char* cudaGetErrorName(cudaError_t error) { return words(error).runtime; }
API const char* cudaGetErrorString(cudaError_t error) { return words(error).text; }
API CUresult cuGetErrorName(CUresult error, const char** name)
{
    return CUresult(given(name, words(error).driver));
}
API CUresult cuGetErrorString(CUresult error, const char** text)
{
    return CUresult(given(text, words(error).text));
}
