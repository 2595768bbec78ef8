// A pipelined connection for writes. Statements that belong together are sent in one write and
// answered in one round trip. The connection is created on demand, and created again after it
// breaks.
import pg from "pg";

/** Returns the driver configuration. Called for each new connection. */
export type GetClientConfig = () => Promise<pg.ClientConfig>;

/** Returns every value as the text that the server sent. */
export const TEXT_TYPES: pg.CustomTypesConfig = {
  getTypeParser: () => (value: string | Buffer) => (Buffer.isBuffer(value) ? value : `${value}`),
};

/** A row, by column name. */
export type Row = Readonly<Record<string, string | null>>;

/**
 * A query. If it has a name, it is parsed once per connection. Do not set a name behind a pooler
 * that drops prepared statements.
 */
export interface SqlQuery {
  readonly text: string;
  readonly values?: readonly (string | number | Buffer | null)[];
  readonly name?: string;
}

/**
 * Runs a query and returns its rows. Queries issued in the same turn of the event loop are sent
 * together.
 */
export type RunSql = (question: SqlQuery) => Promise<readonly Row[]>;

/**
 * Bytes that each new server process allocates and frees once. Without this, server processes
 * return memory to the system after each batch and request it again, which takes one third of the
 * batch time. The cause is a property of glibc: it retains up to twice the largest block that was
 * ever allocated and freed.
 */
const SERVER_MEMORY_BYTES = 4_000_000;

/**
 * Maximum silence of the server before the connection counts as broken, in milliseconds. The
 * server's `statement_timeout` is shorter.
 */
export const SERVER_SILENCE_MS = 2_500;

export class PipelinedConnection {
  readonly #getConfig: GetClientConfig;
  #client: Promise<pg.Client> | undefined;
  /** Number of connections that were created. */
  connectionCount = 0;

  constructor(connecting: GetClientConfig) {
    this.#getConfig = connecting;
  }

  /** Whether a connection exists. If there is no connection, the next query creates one. */
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

  /** Drops the connection because it is broken or its last result is unknown. */
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
        throw new Error(
          "The database is read-only, because it is a replica or was not promoted yet.",
        );
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
