// Python's official clients of Realtime and of the Live API.
import { describeClients } from "./describe-clients.ts";
import { PYTHON_CLIENTS } from "./drivers.ts";

describeClients(PYTHON_CLIENTS);
