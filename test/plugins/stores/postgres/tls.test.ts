// A PostgreSQL that only accepts encrypted connections: the server has a certificate of an
// authority that the operator names, and nothing weaker is offered. Migrations, the gateway, and
// reports each use their own role.
import { chownSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NOON, reserveCommand, settleCommand } from "../../../../src/testing/store.ts";
import { connectionConfig } from "../../../../plugins/stores/postgres/connection/connection-config.ts";
import {
  createPostgresStore,
  type PostgresStore,
} from "../../../../plugins/stores/postgres/store.ts";
import { hasPostgres, startPostgres, type Postgres } from "../../../kit/database/postgres.ts";
import { authority } from "../../../rig/faults/certificates.ts";
import { settings } from "../postgres-under-test.ts";

const NOBODY = 65_534;
const ours = authority("Ours");
const strange = authority("Strange");
const server = ours.issue({ name: "localhost" });
/** The client certificate of a gateway. */
const client = ours.issue({ name: "certified" });
/** Each address has the operator's settings. */
const FILES: Readonly<Record<string, string>> = {
  ours: ours.root,
  strange: strange.root,
  cert: client.cert,
  key: client.key,
  password: "r:%40/?\n",
};

describe.skipIf(!hasPostgres())("the postgres store over TLS", () => {
  let postgres: Postgres;
  let plain: string;
  let safe: string;
  beforeAll(async () => {
    postgres = await startPostgres();
    const data = join(postgres.dir, "data");
    const put = async (name: string, text: string) => {
      const file = join(data, name);
      await writeFile(file, text, { mode: 0o600 });
      if (process.getuid?.() === 0) chownSync(file, NOBODY, NOBODY);
    };
    plain = await postgres.database();
    await postgres.sql(
      plain,
      `CREATE ROLE owns LOGIN PASSWORD 'o'; CREATE ROLE runs LOGIN PASSWORD 'r'; CREATE ROLE reads LOGIN PASSWORD 'd'; CREATE ROLE certified LOGIN; CREATE ROLE filed LOGIN PASSWORD 'r:%40/?';
       GRANT CREATE ON DATABASE ${new URL(plain).pathname.slice(1)} TO owns`,
    );
    await put("server.crt", server.cert);
    await put("server.key", server.key);
    await put("root.crt", ours.root);
    await put(
      "pg_hba.conf",
      "local all tollgate trust\nhost all tollgate 127.0.0.1/32 trust\nhostssl all certified all cert\nhostssl all all all scram-sha-256\nhostnossl all all all reject\n",
    );
    await postgres.sql(plain, "ALTER SYSTEM SET ssl_ca_file = 'root.crt'");
    await postgres.sql(plain, "ALTER SYSTEM SET ssl = on");
    await postgres.sql(plain, "SELECT pg_reload_conf()");
    const at = new URL(plain);
    at.hostname = "localhost";
    safe = at.href;
  });
  afterAll(() => postgres?.[Symbol.asyncDispose]());

  const as = (user: string, password: string, url = safe): string => {
    const at = new URL(url);
    [at.username, at.password] = [user, password];
    return at.href;
  };
  const store = (
    { ca, url }: { readonly ca?: string | undefined; readonly url?: string },
    tls: "verify-full" | "off" = "verify-full",
  ): PostgresStore => {
    const address = (user: string, password: string) => ({
      url: as(user, password, url),
      tls,
      ca,
      isPooled: false,
      readFile: async (path: string) => Buffer.from(FILES[path] ?? (await readFile(path))),
    });
    return createPostgresStore(
      settings(safe, {
        address: address("runs", "r"),
        ownerAddress: address("owns", "o"),
        reportAddress: address("reads", "d"),
        roles: { run: "runs", read: "reads" },
      }),
    );
  };
  /** Reason why it cannot be reached. */
  const why = async (of: PostgresStore): Promise<string> => {
    try {
      return String(await of.commands!["status"]!.run({}));
    } catch (error) {
      return (error as Error).message;
    } finally {
      await of.close();
    }
  };

  it("migrates, runs, and reports with separate roles, over encrypted connections", async () => {
    const of = store({ ca: "ours" });
    await of.open({ instance: "one" });
    await of.apply([reserveCommand("a"), reserveCommand("b")]);
    await of.apply([
      settleCommand("a"),
      { do: "key", at: NOON, key: { id: "k", digest: "d", created: NOON } },
    ]);
    expect((await of.sumEntries({ by: ["key"] }))[0]?.calls).toBe(1);
    const found = await postgres.sql(
      plain,
      "SELECT DISTINCT a.usename, s.ssl FROM pg_stat_activity a JOIN pg_stat_ssl s USING (pid) WHERE a.application_name = 'tollgate' ORDER BY 1",
    );
    expect(found).toBe("reads|t\nruns|t");
    expect(await of.verify!()).toEqual([]);
    await of.close();
    const owner = await postgres.sql(
      plain,
      "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'tollgate'",
    );
    expect(owner).toBe("owns");
  });

  it("rejects a server certificate of another or unknown authority, with an explanation", async () => {
    expect(await why(store({ ca: "strange" }))).toMatch(
      /is unreachable: .*(certificate|unable to)/i,
    );
    expect(await why(store({}))).toMatch(/is unreachable: .*(certificate|unable to)/i);
  });

  it("rejects a server with another name", async () => {
    const at = new URL(safe);
    at.hostname = "127.0.0.1";
    expect(await why(store({ ca: "ours", url: at.href }))).toMatch(
      /is unreachable: .*does not match/i,
    );
  });

  const single = (user: string, more: object): PostgresStore => {
    const at = new URL(safe);
    [at.username, at.password] = [user, ""];
    const address = {
      url: at.href,
      tls: "verify-full" as const,
      ca: "ours",
      isPooled: false,
      readFile: async (path: string) => Buffer.from(FILES[path]!),
      ...more,
    };
    return createPostgresStore(
      settings(safe, { address, ownerAddress: address, reportAddress: address }),
    );
  };

  it("authenticates with a client certificate if the server requires one, and is rejected without it", async () => {
    expect(await why(single("certified", { cert: "cert", key: "key" }))).not.toMatch(
      /reached|certificate/,
    );
    expect(await why(single("certified", {}))).toMatch(/certificate/);
  });

  it("reads its password from a file", async () => {
    expect(await why(single("filed", { passwordFile: "password" }))).not.toMatch(
      /reached|password/,
    );
    expect(await why(single("filed", {}))).toMatch(/password/);
  });

  it("encrypts remote connections by default, and no local ones", async () => {
    const secure = async (at: string) => {
      const url = `postgres://${at}`;
      const of = {
        url,
        tls: "auto",
        isPooled: false,
        readFile: () => Promise.reject(new Error(at)),
      } as const;
      const { ssl } = await connectionConfig(of, { statementMs: 1_000 });
      return ssl;
    };
    for (const at of ["u@db.internal/d", "10.0.0.7:5432/d", "[fd00::7]/d", "127.0.0.1.example/d"])
      expect(await secure(at), at).toEqual({ rejectUnauthorized: true });
    for (const at of [
      "localhost/d",
      "127.3.2.1:5432/d",
      "[::1]/d",
      "u@%2Frun%2Fdb/d",
      "/d?host=/run/db",
    ])
      expect(await secure(at), at).toBe(false);
  });

  it("gets an error if the server requires encryption", async () => {
    expect(await why(store({}, "off"))).toMatch(/pg_hba\.conf rejects|no encryption/i);
  });

  it("states which password is wrong, without any of its characters", async () => {
    const of = createPostgresStore(
      settings(as("runs", "wrong-canary"), {
        address: {
          url: as("runs", "wrong-canary"),
          tls: "verify-full",
          ca: "ours",
          isPooled: false,
          readFile: async () => Buffer.from(ours.root),
        },
        ownerAddress: {
          url: as("runs", "wrong-canary"),
          tls: "verify-full",
          ca: "ours",
          isPooled: false,
          readFile: async () => Buffer.from(ours.root),
        },
      }),
    );
    const said = await why(of);
    expect(said).toMatch(/password authentication failed/);
    expect(said).not.toContain("canary");
  });
});
