// A database connection that breaks at random: before a statement is sent, after its response, or
// in between.
import type { PipelinedConnection } from "../../../../plugins/stores/postgres/connection/pipelined-connection.ts";

export type BrittleLine = PipelinedConnection & { calm(yes: boolean): void };

/** A connection that breaks once at a commit: before the server receives it, or after its response. */
export function breakingAtCommit(
  line: PipelinedConnection,
  when: "before" | "after",
): PipelinedConnection & { arm(): void } {
  let isArmed = false;
  return {
    arm: () => void (isArmed = true),
    get connectionCount() {
      return line.connectionCount;
    },
    get isConnected() {
      return line.isConnected;
    },
    disconnect: () => line.disconnect(),
    close: () => line.close(),
    async connect() {
      const ask = await line.connect();
      return async (question: Parameters<typeof ask>[0]) => {
        if (!isArmed || question.text !== "COMMIT") return ask(question);
        isArmed = false;
        if (when === "after") await ask(question);
        throw Object.assign(new Error("broken"), { code: "ECONNRESET" });
      };
    },
  } as unknown as PipelinedConnection & { arm(): void };
}

/** `share`: of statements that break it in each of these ways. */
export function brittle(
  line: PipelinedConnection,
  chance: () => number,
  share = 0.04,
): BrittleLine {
  const broken = () => Object.assign(new Error("broken"), { code: "ECONNRESET" });
  let calm = true;
  let over = 0;
  const one = {
    calm: (yes: boolean) => void (calm = yes),
    get connectionCount() {
      return line.connectionCount;
    },
    get isConnected() {
      return line.isConnected;
    },
    disconnect: () => line.disconnect(),
    close: () => line.close(),
    async connect() {
      const ask = await line.connect();
      const { connectionCount } = line;
      return async (question: Parameters<typeof ask>[0]) => {
        const luck = calm ? 0.5 : chance();
        // Later data is not sent either.
        if (luck < share) over = connectionCount;
        if (over === connectionCount) throw broken();
        if (luck > 1 - share) {
          over = connectionCount;
          // It arrives, whatever its sender does in the meantime.
          ask(question).catch(() => undefined);
          throw broken();
        }
        const answer = await ask(question);
        if (luck < 2 * share) over = connectionCount;
        if (over === connectionCount) throw broken();
        return answer;
      };
    },
  } satisfies Pick<BrittleLine, keyof BrittleLine>;
  return one as unknown as BrittleLine;
}
