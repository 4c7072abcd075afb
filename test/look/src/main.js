// Hydrogen, as its SDK has it: the whole client, on the homeserver that the
// address names.
import { FeatureSet, Platform, RootViewModel, createNavigation, createRouter } from 'hydrogen-view-sdk';
import downloadSandbox from 'hydrogen-view-sdk/download-sandbox.html?url';
import worker from 'hydrogen-view-sdk/main.js?url';
import wasm from '@matrix-org/olm/olm.wasm?url';
import wasmBundle from '@matrix-org/olm/olm.js?url';
import legacyBundle from '@matrix-org/olm/olm_legacy.js?url';
import 'hydrogen-view-sdk/assets/theme-element-light.css';

const platform = new Platform({
  container: document.body,
  assetPaths: { downloadSandbox, worker, olm: { wasm, legacyBundle, wasmBundle }, serviceWorker: 'sw.js' },
  config: { defaultHomeServer: new URLSearchParams(location.search).get('homeserver') },
  options: { development: false },
});
await platform.init();
const navigation = createNavigation();
platform.setNavigation(navigation);
const urlRouter = createRouter({ navigation, history: platform.history });
urlRouter.attach();
const features = await FeatureSet.load(platform.settingsStorage);
const view = new RootViewModel({ platform, urlRouter, navigation, features });
await view.load();
platform.createAndMountRootView(view);
