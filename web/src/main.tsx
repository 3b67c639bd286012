import { render } from "preact";
import { App } from "./app.tsx";
import { startClock } from "./clock.ts";
import { startKeys } from "./keys.ts";
import { startRouter } from "./router.ts";
import { beginSession } from "./session.ts";
import { startTheme } from "./theme.ts";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/shell.css";
import "./styles/parts.css";
import "./styles/run.css";

startTheme();
startRouter();
startKeys();
startClock();
render(<App />, document.getElementById("app") as HTMLElement);
void beginSession();
