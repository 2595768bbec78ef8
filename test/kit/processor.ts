/**
 * What this process has worked so far, in milliseconds. Laws of speed go by it and not by the clock: on a busy machine a
 * test waits for its turn, and the time of others is not its own.
 */
export function worked(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
