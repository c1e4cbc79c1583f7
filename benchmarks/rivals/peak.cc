// The multiply-add rate that this processor reaches on two threads with everything in registers.
// For every line read ("float32" or "float64") it answers {"gflops": ...}.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#if defined(__AVX512F__)
constexpr int BYTES = 64;
#elif defined(__AVX__)
constexpr int BYTES = 32;
#else
constexpr int BYTES = 16;
#endif
constexpr int CHAINS = 12;  // more than latency (4) times units (2), and with both factors no more than 16 registers
constexpr long TURNS = 60'000'000;

template <class T> struct Lanes { typedef T Vector __attribute__((vector_size(BYTES))); };

template <class T> void spin(T start, T* sink) {
    typename Lanes<T>::Vector sums[CHAINS], factor = start + typename Lanes<T>::Vector{}, shift = factor * T(1e-3);
    for (int i = 0; i < CHAINS; i++) sums[i] = factor * T(i);
    for (long turn = 0; turn < TURNS; turn++) {
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++) sums[i] = sums[i] * factor + shift;
    }
    for (int i = 1; i < CHAINS; i++) sums[0] += sums[i];
    *sink = sums[0][0];
}

template <class T> double rate() {
    T sinks[2];
    auto began = std::chrono::steady_clock::now();
    std::thread other(spin<T>, T(0.999), &sinks[1]);
    spin<T>(T(0.999), &sinks[0]);
    other.join();
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    volatile T used = sinks[0] + sinks[1];
    (void)used;
    return 2.0 * 2.0 * CHAINS * TURNS * (BYTES / sizeof(T)) / seconds / 1e9;
}

int main() {
    char line[64];
    while (std::fgets(line, sizeof line, stdin)) {
        std::printf("{\"gflops\": %.1f}\n", std::strncmp(line, "float32", 7) ? rate<double>() : rate<float>());
        std::fflush(stdout);
    }
}
