// npm starts a program through a shell and hands signals to that shell alone, which ends without a word: what it had started would go on,
// and nothing would know of it. So a gateway under npm looks whether its parent is still the one that started it.

const CHECK_MS = 500;
/** Read when the program starts: a parent that ends while the gateway starts is gone too. */
const PARENT_PID = process.ppid;

/** `gone`: once, when the parent has ended. A gateway that was started otherwise has a parent that may leave it. */
export function watchNpmParent(env: NodeJS.ProcessEnv, gone: () => void): void {
  if (env["npm_command"] === undefined) return;
  const timer = setInterval(() => {
    if (process.ppid === PARENT_PID) return;
    clearInterval(timer);
    gone();
  }, CHECK_MS);
  timer.unref();
}
