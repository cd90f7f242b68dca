/* What Python may call. */
#ifndef FOLD_EXPORT_H
#define FOLD_EXPORT_H

#if defined(_WIN32)
#define FOLD_EXPORT __declspec(dllexport)
#else
#define FOLD_EXPORT __attribute__((visibility("default")))
#endif

#endif
