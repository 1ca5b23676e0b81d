# Where a distribution would put things. `cmake --install build/release --prefix /usr` makes mount(8), fsck(8) and
# systemd find them.

set(bin ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
foreach(helper mount.varve umount.fuse.varve)
  configure_file(packaging/${helper} ${bin}/${helper} COPYONLY)
endforeach()

foreach(tool mkfs.varve fsck.varve)
  install(PROGRAMS ${bin}/${tool} DESTINATION ${CMAKE_INSTALL_SBINDIR})
endforeach()
install(PROGRAMS ${bin}/varve DESTINATION ${CMAKE_INSTALL_BINDIR})
# Without what only a debugger reads: four fifths of them. In build/ it stays. A distribution strips by itself.
option(VARVE_STRIP "Strip what is installed" ON)
if(VARVE_STRIP)
  foreach(tool ${CMAKE_INSTALL_SBINDIR}/mkfs.varve ${CMAKE_INSTALL_SBINDIR}/fsck.varve ${CMAKE_INSTALL_BINDIR}/varve)
    install(CODE "execute_process(COMMAND ${CMAKE_STRIP} \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${tool}\")")
  endforeach()
endif()
install(PROGRAMS packaging/mount.varve packaging/umount.fuse.varve DESTINATION ${CMAKE_INSTALL_SBINDIR})
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/links)
foreach(link mount.fuse.varve mkfs.fuse.varve fsck.fuse.varve)
  string(REPLACE ".fuse" "" target ${link})
  file(CREATE_LINK ${target} ${CMAKE_BINARY_DIR}/links/${link} SYMBOLIC)
  install(FILES ${CMAKE_BINARY_DIR}/links/${link} DESTINATION ${CMAKE_INSTALL_SBINDIR})
endforeach()

file(GLOB pages_1 docs/man/*.1)
file(GLOB pages_8 docs/man/*.8)
install(FILES ${pages_1} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${pages_8} DESTINATION ${CMAKE_INSTALL_MANDIR}/man8)

file(GLOB units packaging/varve@.service packaging/varve-*.service packaging/varve-*.timer)
install(FILES ${units} DESTINATION lib/systemd/system)
install(PROGRAMS packaging/varve-timed-snapshot packaging/varve-sleep DESTINATION lib/varve)
install(PROGRAMS packaging/varve-generator DESTINATION lib/systemd/system-generators)
install(FILES packaging/recognition/61-varve.rules DESTINATION lib/udev/rules.d)
install(FILES packaging/recognition/magic packaging/recognition/varve.c packaging/grafana/varve.json
              packaging/prometheus/varve.rules.yml DESTINATION ${CMAKE_INSTALL_DATADIR}/varve)
file(GLOB documents docs/*.md)
install(FILES ${documents} DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)
install(FILES packaging/varve.zsh-completion DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions RENAME _varve)
foreach(command varve mkfs.varve fsck.varve)
  install(FILES packaging/varve.fish-completion DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME ${command}.fish)
endforeach()
# For policies of the cleaner that are built elsewhere: what examples/cleaner-plugin/patient.cc includes, all in all.
foreach(header base/clock base/cpu_pause base/errc base/gate base/lock_order base/mutex base/result base/types cleaner/evaluation
               cleaner/parameters cleaner/placement cleaner/registry cleaner/segment_facts cleaner/selection cleaner/strategy format/layout)
  get_filename_component(room ${header} DIRECTORY)
  install(FILES src/${header}.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/varve/${room} COMPONENT development)
endforeach()
install(FILES examples/cleaner-plugin/patient.cc DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT development)
install(PROGRAMS examples/failover/failover DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(FILES packaging/fstab.example README.md LICENSE CHANGELOG.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
foreach(command varve mkfs.varve fsck.varve mount.varve)
  install(FILES packaging/varve.bash-completion DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
          RENAME ${command})
endforeach()
