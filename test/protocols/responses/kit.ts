import { getFault, type Fault } from "tollgate/plugin";

/** What was refused; nothing else may be thrown. */
export function faultFrom(run: () => unknown): Fault {
  try {
    run();
  } catch (error) {
    const fault = getFault(error);
    if (fault) return fault;
    throw error;
  }
  throw new Error("Nothing was refused.");
}
