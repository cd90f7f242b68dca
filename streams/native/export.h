/* What differs between compilers: what Python may call, and fetching ahead. */
#ifndef FOLD_EXPORT_H
#define FOLD_EXPORT_H

#if defined(_WIN32)
#define FOLD_EXPORT __declspec(dllexport)
#else
#define FOLD_EXPORT __attribute__((visibility("default")))
#endif

/* Fetches memory that is needed soon. */
#if defined(__GNUC__)
#define PREFETCH(place) __builtin_prefetch(place)
#else
#define PREFETCH(place) ((void)(place))
#endif

#endif
