// The only place that reads the wall clock. It is for moments that people and other machines name,
// such as the expiry of a key, the time of a row, or a calendar window. The wall clock can jump, so
// waits never use it.

/** Returns the current time in Unix milliseconds. */
export const wallClock = (): number => Date.now();
