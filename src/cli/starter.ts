// npm starts a program through a shell and hands signals to that shell alone, which ends without a word: what it had started would go on,
// and nothing would know of it. So a gateway under npm looks whether its parent is still the one that started it.

const LOOK_MS = 500;
/** Read when the program starts: a parent that ends while the gateway starts is gone too. */
const parent = process.ppid;

/** `gone`: once, when the parent has ended. A gateway that was started otherwise has a parent that may leave it. */
export function underNpm(env: NodeJS.ProcessEnv, gone: () => void): void {
  if (env["npm_command"] === undefined) return;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    gone();
  }, LOOK_MS);
  timer.unref();
}
