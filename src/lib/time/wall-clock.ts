// The only place where the wall clock is read: for moments that people and other machines name, such as the end of a key, a row's
// time or a window of the calendar. It may jump, so no wait goes by it.

/** Unix milliseconds. */
export const wallClock = (): number => Date.now();
