// One connection that writes, pipelined: what belongs together goes out in one write, and one round trip later all of it is answered. It is made
// when it is needed, and again when it broke.
import pg from "pg";

/** How a connection is made: the driver's words, and the same again for each one. */
export type GetClientConfig = () => Promise<pg.ClientConfig>;

/** Every value is the text that the server sent. */
export const TEXT_TYPES: pg.CustomTypesConfig = {
  getTypeParser: () => (value: string | Buffer) => (Buffer.isBuffer(value) ? value : `${value}`),
};

/** A row, by its columns' names. */
export type Row = Readonly<Record<string, string | null>>;

/** What is asked of the database; with a name it is parsed once a connection, where nothing stands between that forgets it. */
export interface SqlQuery {
  readonly text: string;
  readonly values?: readonly (string | number | Buffer | null)[];
  readonly name?: string;
}

/** Asks, and answers with rows. Questions asked in one turn go out together. */
export type RunSql = (question: SqlQuery) => Promise<readonly Row[]>;

/**
 * The server's processes give memory back to their system with each batch and ask for it again, which takes a third of the batch's time: glibc keeps up to
 * twice as much as was once asked for, and given back, in one piece.
 */
const SERVER_MEMORY_BYTES = 4_000_000;

/** Silence of the server that is longer than this is a broken connection; its own statement_timeout is shorter. */
export const SERVER_SILENCE_MS = 2_500;

export class PipelinedConnection {
  readonly #getConfig: GetClientConfig;
  #client: Promise<pg.Client> | undefined;
  /** How many connections there were. */
  connectionCount = 0;

  constructor(connecting: GetClientConfig) {
    this.#getConfig = connecting;
  }

  /** Whether there is a connection; another one is made by asking. */
  get isConnected(): boolean {
    return this.#client !== undefined;
  }

  async connect(): Promise<RunSql> {
    const client = await (this.#client ??= this.#createClient());
    return async ({ text, values = [], name }) => {
      const { rows } = await client.query<Row>({
        text,
        values: [...values],
        ...(name !== undefined && { name }),
      });
      return rows;
    };
  }

  /** It is broken, or what it said last cannot be known. */
  disconnect(): void {
    const client = this.#client;
    this.#client = undefined;
    void client?.then(closeClient, () => undefined);
  }

  async close(): Promise<void> {
    const client = await this.#client?.catch(() => undefined);
    this.#client = undefined;
    await client?.end().catch(() => undefined);
  }

  async #createClient(): Promise<pg.Client> {
    try {
      const client = new pg.Client({
        ...(await this.#getConfig()),
        pipeline: true,
      } as pg.ClientConfig);
      client.on("error", () => this.#onConnectionLost(client));
      client.on("end", () => this.#onConnectionLost(client));
      await client.connect();
      const { rows } = await client.query<{ there: string }>(
        `SELECT pg_is_in_recovery()::text AS there, length(repeat(' ', ${SERVER_MEMORY_BYTES}))`,
      );
      if (rows[0]?.there !== "false") {
        closeClient(client);
        throw new Error("The database is read-only: it is a replica, or not yet the primary.");
      }
      this.connectionCount++;
      return client;
    } catch (error) {
      this.#client = undefined;
      throw error;
    }
  }

  #onConnectionLost(client: pg.Client): void {
    void this.#client?.then(
      (mine) => mine === client && (this.#client = undefined),
      () => undefined,
    );
  }
}

const closeClient = (client: pg.Client): void => void client.end().catch(() => undefined);
