// A few connections for what only reads, made when they are needed.
import pg from "pg";
import type { Ask, Connecting, Row } from "./line.ts";
import { isAway, unreachable } from "./trouble.ts";

export interface Reading {
  readonly ask: Ask;
  end(): Promise<void>;
}

export function reading(connecting: Connecting, most: number): Reading {
  let pool: Promise<pg.Pool> | undefined;
  const made = async (): Promise<pg.Pool> => {
    const fresh = new pg.Pool({ ...(await connecting()), max: most, idleTimeoutMillis: 30_000 });
    // A connection that breaks while it is not used is replaced when it is.
    fresh.on("error", () => {});
    return fresh;
  };
  return {
    ask: async ({ text, values = [] }) => {
      try {
        const { rows } = await (await (pool ??= made())).query<Row>({ text, values: [...values] });
        return rows;
      } catch (error) {
        // In the words of the contract: what asks tells it from a defect by them.
        if (isAway(error)) unreachable(error);
        throw error;
      }
    },
    async end() {
      const ended = pool;
      pool = undefined;
      await (await ended)?.end();
    },
  };
}
