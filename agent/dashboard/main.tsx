import { render } from 'preact'
import { connect } from './connect.ts'
import { Page } from './page.tsx'
import { createStore } from './store.ts'

const store = createStore()
const at = document.querySelector('#page')
if (at) render(<Page store={store} />, at)
connect(store)
