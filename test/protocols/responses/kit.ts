import { getFault, type Fault } from "tollgate/plugin";

/** The rejection. Nothing else may be thrown. */
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
