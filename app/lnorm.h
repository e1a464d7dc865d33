/* The C interface of lnorm: every command of the program on tensors in memory.
 *
 * A job is a command, its options, tensors by role and results by role:
 *
 *   lnorm_job* job = lnorm_job_new("apply");
 *   lnorm_job_set(job, "eps", "1e-6");
 *   lnorm_job_bind(job, "input", &x);
 *   lnorm_job_bind_result(job, "y", &y);
 *   if (lnorm_job_run(job) == 2) puts(lnorm_job_error(job));
 *   lnorm_job_free(job);
 *
 * Options, roles and results have the names of the program's options without dashes in front: "eps", "eps-on" (or "eps_on"),
 * "weight" (or "gamma", its other name). docs/c.md lists roles and results.
 *
 * No function throws, prints, or keeps a pointer to a tensor's elements after the run; structs and strings that it is given are
 * copied. One thread uses a job at a time (but for lnorm_job_cancel); several jobs may run on several threads at once.
 * Strings are UTF-8, and those that a job returns live until its next call. Of a null job functions return 2 or "".
 */
#ifndef LNORM_H
#define LNORM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LNORM_API __attribute__((visibility("default")))
#else
#define LNORM_API
#endif

typedef struct lnorm_job lnorm_job;

/* Flags of a tensor. */
enum {
  /* The elements of an input are not in the machine's byte order. */
  LNORM_SWAPPED = 1,
  /* It is refused as a result. */
  LNORM_READ_ONLY = 2
};

/* Elements in memory that the caller owns. */
typedef struct lnorm_tensor {
  /* The element whose indices are all 0. May be null if there are no elements. */
  void* data;
  /* A name of --dtype and --as: "float32", "bfloat16", "float8_e4m3fn", "int64", "bool", ... */
  const char* dtype;
  /* 0 to 64; 0 is a number. */
  int32_t ndim;
  /* LNORM_SWAPPED, LNORM_READ_ONLY, both or 0. */
  uint32_t flags;
  /* ndim extents, each 0 or more. May be null if ndim is 0. */
  const int64_t* shape;
  /* ndim distances in bytes, of any sign or 0. Null: C order. No two elements of a result may share
   * bytes. */
  const int64_t* strides;
} lnorm_tensor;

/* What kind of error a job met. */
enum {
  LNORM_OK = 0,
  /* The command has no such option, role or result. */
  LNORM_UNKNOWN = 1,
  /* A value is wrong, or values do not fit together. */
  LNORM_INVALID = 2,
  /* The operating system could not do it. */
  LNORM_SYSTEM = 3,
  LNORM_NO_MEMORY = 4,
  /* By lnorm_job_cancel. */
  LNORM_CANCELED = 5
};

/* What lnorm_option_kind says of an option. */
enum {
  LNORM_NO_OPTION = 0,
  /* lnorm_job_set(job, option, NULL) */
  LNORM_FLAG = 1,
  /* A number, a word, or several with commas between them: lnorm_job_set(job, option, "1,2") */
  LNORM_VALUE = 2,
  /* A value that may be set several times. */
  LNORM_REPEATED = 3,
  /* A role: lnorm_job_bind, or lnorm_job_set with a literal ("2.5", "[1, 2]") or a file's name. */
  LNORM_TENSOR = 4,
  /* The flag is called no-OPTION, and turns off what is on otherwise. */
  LNORM_NEGATED = 5,
  /* Of the program alone: --output, --json, --color and others. */
  LNORM_OF_PROGRAM = 6
};

/* "0.8.0" */
LNORM_API const char* lnorm_version(void);

/* One of the values above; LNORM_NO_OPTION also where there is no such command. */
LNORM_API int lnorm_option_kind(const char* command, const char* option);

/* A job of a command of the program: "apply", "stats", "compare", "softmax", "grad", "explain", "check", "mutants", "inputs" or
 * "convert". Null if there is no such command, or no memory. lnorm_job_free ends it. */
LNORM_API lnorm_job* lnorm_job_new(const char* command);
LNORM_API void lnorm_job_free(lnorm_job* job);

/* The functions below that return int return 0 if all is well and 2 after an error, if nothing else is said. What was set or
 * bound before stays. */

/* Sets an option by any of its names. value: null for a flag. */
LNORM_API int lnorm_job_set(lnorm_job* job, const char* option, const char* value);

/* Binds a tensor to a role, in place of one that was bound. Roles: "input" (of compare "actual" and "expected"), "output" (what
 * check judges), and every option that takes a tensor: "weight", "bias", "residual", "mean", "rstd", "variance", "dy", "mask",
 * "baseline", "given-scale", "actual-dx", "actual-dweight", "actual-dbias", "actual-mean", "actual-rstd", "actual-sum",
 * "actual-scale". Shapes are those of the program. The elements must stay until the run has ended. */
LNORM_API int lnorm_job_bind(lnorm_job* job, const char* role, const lnorm_tensor* tensor);

/* Binds one of several tensors of a role, in place of one of that name; those of other roles are found by the same name. check, compare, mutants and stats
 * take several. */
LNORM_API int lnorm_job_bind_member(lnorm_job* job, const char* role, const char* name,
                                    const lnorm_tensor* tensor);

/* Says dtype and shape of a result before the run: "y", "mean", "rstd", "variance", "sum" and "scale" of apply; "y" of softmax and
 * convert; "dx", "dweight" and "dbias" of grad. All inputs and options must be there. data is null, strides is null, shape lives until the
 * job's next call. Returns 1 if there is no such result with these options (the mean of RMS norm).
 * After the run of inputs: "ordinary.x", "ordinary.weight" and so on, as lnorm_job_json calls them; data is the
 * job's, in C order, and lives as long as the job. */
LNORM_API int lnorm_job_result(lnorm_job* job, const char* result, lnorm_tensor* tensor);

/* Says where a result goes: a tensor of the shape and dtype that lnorm_job_result says; a dtype of floats is chosen by it where
 * the option dtype is not set. It may be an input's memory, also in part. What is not bound is not computed. After an error its
 * elements are not specified. */
LNORM_API int lnorm_job_bind_result(lnorm_job* job, const char* result, const lnorm_tensor* tensor);

/* Does the work. Returns the program's exit status: 0 done, or what was judged agrees; 1 it does not; 2 an error, or
 * nothing could be judged: then lnorm_job_error is empty, and there is a report. With keep-going the errors of single tensors are in
 * the report. */
LNORM_API int lnorm_job_run(lnorm_job* job);

/* Ends the run soon, or the next one at once, with status 2; the one after that goes on. Any thread may call it while lnorm_job_run
 * runs. */
LNORM_API void lnorm_job_cancel(lnorm_job* job);

/* The report of the last run, as the program prints it, without colors, and in JSON (of inputs the manifest); empty if the command has none. */
LNORM_API const char* lnorm_job_text(const lnorm_job* job);
LNORM_API const char* lnorm_job_json(const lnorm_job* job);

/* Of the last call: what was wrong, in one line in which options are called as in C ("eps_on"); what to try, or empty; the role
 * that does not fit, or empty; and one of LNORM_OK to LNORM_CANCELED. */
LNORM_API const char* lnorm_job_error(const lnorm_job* job);
LNORM_API const char* lnorm_job_hint(const lnorm_job* job);
LNORM_API const char* lnorm_job_role_at_fault(const lnorm_job* job);
LNORM_API int lnorm_job_fault(const lnorm_job* job);

/* The program itself, with its standard streams and signals: argv[0] is its name. Returns the exit status. */
LNORM_API int lnorm_main(int argc, const char* const* argv);

#ifdef __cplusplus
}
#endif

#endif
