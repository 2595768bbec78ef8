// Node opens a debugger on 127.0.0.1:9229 when a process receives SIGUSR1, and any local user who connects runs code in that process. Every
// process of ours starts with the flag below. With the flag alone SIGUSR1 would end the process, so each one also ignores the signal.

export const NO_DEBUGGER = "--disable-sigusr1";

/** The flags of this process, for another one of ours. */
export const childProcessFlags = (flags: readonly string[] = process.execArgv): string[] =>
  flags.includes(NO_DEBUGGER) ? [...flags] : [NO_DEBUGGER, ...flags];
