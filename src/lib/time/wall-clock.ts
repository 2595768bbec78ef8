// The only place that reads the wall clock. It is used for times that people and other machines
// see, such as the expiry of a key, the time of a row, or a calendar window. The wall clock can
// jump, so it is never used for waits.

/** Returns the current time in Unix milliseconds. */
export const wallClock = (): number => Date.now();
