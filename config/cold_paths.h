/* Included before the C that mypyc makes of the broker (docs/design/architecture.md, "Compiled code").

   Behind each call that can fail stands a block that ends in one of these functions. Named cold,
   they take those blocks along to a section of their own: what runs lies close together, in
   fewer lines of the instruction cache. */

#include <Python.h>

void CPy_AddTraceback(const char *, const char *, int, PyObject *) __attribute__((cold));
void CPy_TypeErrorTraceback(const char *, const char *, int, PyObject *, const char *, PyObject *)
    __attribute__((cold));
void CPy_AttributeError(const char *, const char *, const char *, const char *, int, PyObject *)
    __attribute__((cold));
void CPy_TypeError(const char *, PyObject *) __attribute__((cold));
void CPyError_OutOfMemory(void) __attribute__((cold));
