/** One at a time. A caller that asks while one runs gets the one after it: what it looks at may have changed again. */
export function coalesceRuns<W, T>(run: (why: W) => Promise<T>): (why: W) => Promise<T> {
  let running: Promise<T> | undefined;
  let next: Promise<T> | undefined;
  const start = (why: W): Promise<T> => {
    next = undefined;
    const currentRun = run(why).finally(() => {
      if (!next) running = undefined;
    });
    return (running = currentRun);
  };
  return (why) =>
    running
      ? (next ??= running.then(
          () => start(why),
          () => start(why),
        ))
      : start(why);
}
