// A ledger that moves, from this side of the threads: a thread of its own for as long as that lasts.
import type { LedgerMoving, MovedIn, MovedOut } from "tollgate/plugin";
import type { Thread } from "./thread.ts";

/** `start`: a thread that is there while a ledger is copied or cut. */
export const movingOf = (start: () => Promise<Thread>): LedgerMoving => ({
  async out(): Promise<MovedOut> {
    const thread = await start();
    const end = ended(thread);
    await thread.call("leave").catch((error: unknown) => end().then(() => Promise.reject(error)));
    return {
      rows: (after) => thread.call("leavingRows", after),
      quiet: () => thread.call("quiet"),
      rest: () => thread.call("rest"),
      [Symbol.asyncDispose]: end,
    };
  },
  async in(): Promise<MovedIn> {
    const thread = await start();
    const end = ended(thread);
    const after = await thread
      .call<number>("arrive")
      .catch((error: unknown) => end().then(() => Promise.reject(error)));
    return {
      after,
      take: (rows) => thread.call("takeRows", rows),
      finish: (rest) => thread.call("finish", rest),
      [Symbol.asyncDispose]: end,
    };
  },
});

const ended = (thread: Thread) => async (): Promise<void> => {
  await thread.call("close").catch(() => undefined);
  await thread.kill();
};
