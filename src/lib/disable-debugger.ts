// Disables Node's debugger signal. On SIGUSR1, Node opens a debugger on 127.0.0.1:9229, and any
// local user who connects to it can run code in the process. Every Tollgate process ignores the
// signal. Every process that Tollgate starts also has the flag below, which covers the time before
// its code runs. With only the flag, SIGUSR1 would end the process.

export const NO_DEBUGGER = "--disable-sigusr1";

/** Returns the flags of this process for a child process, with `NO_DEBUGGER` added. */
export const childProcessFlags = (flags: readonly string[] = process.execArgv): string[] =>
  flags.includes(NO_DEBUGGER) ? [...flags] : [NO_DEBUGGER, ...flags];
