// A database in an earlier state, as after a failover to a lagging replica.
import { TABLES } from "../postgres-under-test.ts";

/**
 * A replica lags as a whole: its state is of one moment, whatever gateways number or sum in the
 * meantime.
 */
export const copyOf = (ask: (text: string) => Promise<unknown>) => ({
  save: () =>
    ask(`BEGIN ISOLATION LEVEL REPEATABLE READ;
      ${TABLES.map(
        (t) =>
          `DROP TABLE IF EXISTS public.${t}_then; CREATE TABLE public.${t}_then AS TABLE tollgate.${t};`,
      ).join(" ")}
      COMMIT`),
  setBack: () =>
    ask(`BEGIN; SET LOCAL session_replication_role = replica;
      LOCK TABLE ${TABLES.map((t) => `tollgate.${t}`).join(", ")};
      ${TABLES.map((t) => `DELETE FROM tollgate.${t}; INSERT INTO tollgate.${t} OVERRIDING SYSTEM VALUE SELECT * FROM public.${t}_then;`).join(" ")}
      COMMIT; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`),
});
